package impair

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	rule := func(a Action, m Match, w When) Spec { return Spec{Rules: []Rule{{a, m, w}}} }
	drop := Action{Kind: Drop}
	tests := []struct {
		text string
		want Spec
		back string // result of String; "" for the text itself
	}{
		{"", Spec{}, ""},
		{" ; ;", Spec{}, "\x00"},
		{"loss 1%", Spec{Loss: Random{P: 1}}, ""},
		{"loss random 1% 25%", Spec{Loss: Random{P: 1, Correlation: 25}}, "loss 1% 25%"},
		{"loss gemodel 1%", Spec{Loss: GEModel{1, 99, 100, 0}}, "loss gemodel 1% 99% 100% 0%"},
		{"loss gemodel 1% 10%", Spec{Loss: GEModel{1, 10, 100, 0}}, "loss gemodel 1% 10% 100% 0%"},
		{"loss gemodel 1% 10% 70% 0.1%", Spec{Loss: GEModel{1, 10, 70, 0.1}}, ""},
		{"loss state 1%", Spec{Loss: FourState{1, 99, 0, 100, 0}}, "loss state 1% 99% 0% 100% 0%"},
		{"loss state 1% 20% 30% 40% 5%", Spec{Loss: FourState{1, 20, 30, 40, 5}}, ""},
		{"loss 2% ecn", Spec{Loss: Random{P: 2}, ECN: true}, ""},
		{"delay 2ms", Spec{Delay: Delay{Mean: 2 * time.Millisecond}}, ""},
		{"delay 1.5s", Spec{Delay: Delay{Mean: 1500 * time.Millisecond}}, "delay 1500ms"},
		{"delay 1msec 10usecs", Spec{Delay: Delay{Mean: time.Millisecond, Jitter: 10 * time.Microsecond}}, "delay 1ms 10us"},
		{"delay 2ms 0.5ms 25%", Spec{Delay: Delay{2 * time.Millisecond, 500 * time.Microsecond, 25, Uniform}}, "delay 2ms 500us 25%"},
		{"delay 2ms 7ns distribution pareto", Spec{Delay: Delay{2 * time.Millisecond, 7, 0, Pareto}}, ""},
		{"delay 2ms 1ms 5% distribution paretonormal", Spec{Delay: Delay{2 * time.Millisecond, time.Millisecond, 5, ParetoNormal}}, ""},
		{"delay 2ms 1ms distribution normal", Spec{Delay: Delay{2 * time.Millisecond, time.Millisecond, 0, Normal}}, ""},
		{"delay 2ms 1ms distribution uniform", Spec{Delay: Delay{2 * time.Millisecond, time.Millisecond, 0, Uniform}}, "delay 2ms 1ms"},
		{"delay 1us reorder 5% 50% gap 5", Spec{Delay: Delay{Mean: time.Microsecond}, Reorder: Reorder{Chance{5, 50}, 5}}, ""},
		{"duplicate 1%", Spec{Duplicate: Chance{P: 1}}, ""},
		{"corrupt 0.1% 5%", Spec{Corrupt: Chance{0.1, 5}}, ""},
		{"rate 1gbit", Spec{Rate: 1e9}, ""},
		{"rate 2.5mbit limit 20 seed 0x11", Spec{Rate: 2.5e6, Limit: 20, Seed: 17}, "rate 2500kbit limit 20 seed 17"},
		{
			"loss 1% delay 2ms 0.5ms reorder 5% duplicate 1% corrupt 0.1% rate 1gbit seed 7",
			Spec{
				Loss: Random{P: 1}, Delay: Delay{Mean: 2 * time.Millisecond, Jitter: 500 * time.Microsecond},
				Reorder: Reorder{Chance: Chance{P: 5}}, Duplicate: Chance{P: 1}, Corrupt: Chance{P: 0.1}, Rate: 1e9, Seed: 7,
			},
			"loss 1% delay 2ms 500us reorder 5% duplicate 1% corrupt 0.1% rate 1gbit seed 7",
		},

		{"drop", rule(drop, Match{}, When{}), ""},
		{"drop 3rd READ_RESPONSE of qp 7", rule(drop, Match{Packets: "READ_RESPONSE", QPN: 7}, When{Nth: 3}), ""},
		{"drop every 2nd ACK", rule(drop, Match{Packets: "ACK"}, When{Every: 2}), ""},
		{"drop psn 2", rule(drop, Match{PSN: AbsolutePSN(2)}, When{Nth: 1}), "drop 1st with psn 2"},
		{"drop always psn 2", rule(drop, Match{PSN: AbsolutePSN(2)}, When{}), "drop always with psn 2"},
		{"drop psn +0x10", rule(drop, Match{PSN: RelativePSN(16)}, When{Nth: 1}), "drop 1st with psn +16"},
		{"drop always WRITE", rule(drop, Match{Packets: "WRITE"}, When{}), "drop WRITE"},
		{"drop first SEND_LAST", rule(drop, Match{Packets: "SEND_LAST"}, When{Nth: 1}), "drop 1st SEND_LAST"},
		{"drop FIRST", rule(drop, Match{Packets: "FIRST"}, When{}), ""},
		{"drop first 11 UD", rule(drop, Match{Packets: "UD"}, When{First: 11}), ""},
		{"drop 12.5% ACK", rule(drop, Match{Packets: "ACK"}, When{P: 12.5}), ""},
		{"drop in ACK", rule(drop, Match{Direction: In, Packets: "ACK"}, When{}), ""},
		{"drop every 21st in ACK", rule(drop, Match{Direction: In, Packets: "ACK"}, When{Every: 21}), "drop in every 21st ACK"},
		{"drop out 2nd", rule(drop, Match{}, When{Nth: 2}), "drop 2nd"},
		{"corrupt 1st WRITE", rule(Action{Kind: Corrupt}, Match{Packets: "WRITE"}, When{Nth: 1}), ""},
		{"corrupt icrc of 1st WRITE_ONLY", rule(Action{Kind: CorruptICRC}, Match{Packets: "WRITE_ONLY"}, When{Nth: 1}), "corrupt icrc 1st WRITE_ONLY"},
		{"corrupt icrc of qp 0xff", rule(Action{Kind: CorruptICRC}, Match{QPN: 255}, When{}), "corrupt icrc of qp 255"},
		{"duplicate 2nd FETCH_ADD", rule(Action{Kind: Duplicate}, Match{Packets: "FETCH_ADD"}, When{Nth: 2}), ""},
		{"duplicate 5% ACK", rule(Action{Kind: Duplicate}, Match{Packets: "ACK"}, When{P: 5}), ""},
		{"delay 5ms every 10th RC_SEND_ONLY", rule(Action{HoldBack, 5 * time.Millisecond}, Match{Packets: "RC_SEND_ONLY"}, When{Every: 10}), ""},
		{"delay 5ms out", rule(Action{HoldBack, 5 * time.Millisecond}, Match{}, When{}), ""},
		{"corrupt always", rule(Action{Kind: Corrupt}, Match{}, When{}), "corrupt out"},
		{"duplicate out 5%", rule(Action{Kind: Duplicate}, Match{}, When{P: 5}), ""},
		{"delay 5ms in", rule(Action{HoldBack, 5 * time.Millisecond}, Match{Direction: In}, When{}), ""},
		{"mark ecn every 4th WRITE qp 1 psn 9", rule(Action{Kind: MarkECN}, Match{Packets: "WRITE", QPN: 1, PSN: AbsolutePSN(9)}, When{Every: 4}), "mark ecn every 4th WRITE of qp 1 with psn 9"},

		{
			"drop NAK;loss 1%;duplicate 112th RNR;corrupt 2%\n\tseed 3",
			Spec{
				Loss: Random{P: 1}, Corrupt: Chance{P: 2}, Seed: 3,
				Rules: []Rule{{drop, Match{Packets: "NAK"}, When{}}, {Action{Kind: Duplicate}, Match{Packets: "RNR"}, When{Nth: 112}}},
			},
			"loss 1% corrupt 2% seed 3; drop NAK; duplicate 112th RNR",
		},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			got, err := Parse(test.text)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			require.NoError(t, got.Validate())
			switch test.back {
			case "":
				require.Equal(t, test.text, got.String())
			case "\x00":
				require.Empty(t, got.String())
			default:
				require.Equal(t, test.back, got.String())
				again, err := Parse(test.back)
				require.NoError(t, err)
				require.Equal(t, test.want, again)
			}
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		text   string
		word   string // position of the error: the first such substring of text
		reason string
	}{
		{"los 1%", "los", "unknown word"},
		{"loss", "", "percentage"},
		{"loss 1", "1", "percentage"},
		{"loss 101%", "101%", "percentage"},
		{"loss -1%", "-1%", "percentage"},
		{"loss NaN%", "NaN%", "percentage"},
		{"loss gemodel", "", "percentage"},
		{"loss gemodel 1% x", "x", "unknown word"},
		{"loss 1% loss 2%", "loss", "given twice"},
		{"loss 1% drop ACK", "drop", "put ';' before it"},
		{"delay 5", "5", "unit"},
		{"delay 5mm", "5mm", "unit"},
		{"delay 5h", "5h", "unit"},
		{"delay 3601s", "3601s", "at most an hour"},
		{"delay 1e3ms", "1e3ms", "unit"},
		{"delay 1ms 1ms distribution gauss", "gauss", "uniform, normal, pareto, paretonormal"},
		{"reorder 5% gap 0", "0", "from 1"},
		{"rate 10gbps", "10gbps", "gbit"},
		{"rate 0bit", "0bit", "1bit to 10tbit"},
		{"rate 11tbit", "11tbit", "1bit to 10tbit"},
		{"limit 0", "0", "from 1"},
		{"limit 1.5", "1.5", "from 1"},
		{"seed -1", "-1", "64 bits"},
		{"Loss 1%", "Loss", "unknown word"},
		{"drop ack", "ack", "unknown packets"},
		{"drop READ_RESPONS", "READ_RESPONS", "unknown packets"},
		{"drop 3th ACK", "3th", "ordinal"},
		{"drop 0th ACK", "0th", "ordinal"},
		{"drop 3 ACK", "3", "ordinal"},
		{"drop every ACK", "ACK", "ordinal"},
		{"drop every", "", "ordinal"},
		{"drop first 0 ACK", "0", "from 1"},
		{"drop 0% ACK", "0%", "never applies"},
		{"drop of ACK", "ACK", "want qp"},
		{"drop with ACK", "ACK", "want psn"},
		{"drop qp 0", "0", "QPN"},
		{"drop qp 16777216", "16777216", "QPN"},
		{"drop qp", "", "QPN"},
		{"drop psn 16777216", "16777216", "PSN"},
		{"drop psn ++1", "++1", "PSN"},
		{"drop psn 1 qp 2", "qp", "not valid here"},
		{"drop ACK every 2nd", "every", "not valid here"},
		{"drop ACK loss 1%", "loss", "not valid here"},
		{"delay 0ms ACK", "0ms", "longer than 0"},
		{"delay ACK", "ACK", "unit"},
		{"mark ACK", "ACK", "want ecn"},
		{"mark", "", "want ecn"},
		{"corrupt icrc of", "", ""},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			spec, err := Parse(test.text)
			if test.reason == "" {
				require.NoError(t, err)
				return
			}
			var syntax *SyntaxError
			require.True(t, errors.As(err, &syntax), "%v", err)
			require.Equal(t, Spec{}, spec)
			require.Equal(t, test.word, syntax.Word)
			require.Contains(t, syntax.Reason, test.reason)
			if test.word == "" {
				require.Equal(t, len(test.text), syntax.Offset)
			} else {
				require.True(t, strings.HasPrefix(test.text[syntax.Offset:], test.word))
				require.Contains(t, err.Error(), `"`+test.word+`" at byte`)
			}
		})
	}
}

// TestInvalidSpecs has texts with valid words and no valid meaning, and invalid Specs.
func TestInvalidSpecs(t *testing.T) {
	for text, want := range map[string]string{
		"reorder 5%":                    "reorder needs a delay",
		"delay 1ms reorder 0% gap 2":    "needs a probability",
		"ecn":                           "ecn needs a loss",
		"delay 1ms distribution normal": "without jitter",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want)
	}
	ack := Match{Packets: "ACK"}
	for want, spec := range map[string]Spec{
		"probability 101%: want":       {Duplicate: Chance{P: 101}},
		"probability -1%: want":        {Loss: GEModel{R: -1}},
		"jitter":                       {Delay: Delay{Mean: -1}},
		"distribution 9":               {Delay: Delay{Mean: 1, Jitter: 1, Distribution: 9}},
		"rate -1":                      {Rate: -1},
		"limit -1":                     {Limit: -1},
		"more than one":                {Rules: []Rule{{Match: ack, When: When{Nth: 1, Every: 1}}}},
		"counts from 1":                {Rules: []Rule{{Match: ack, When: When{Nth: -1}}}},
		`"drop ACKS": unknown packets`: {Rules: []Rule{{Match: Match{Packets: "ACKS"}}}},
		"want more than 0":             {Rules: []Rule{{Action: Action{Kind: HoldBack}}}},
		"only HoldBack has a Delay":    {Rules: []Rule{{Action: Action{Kind: Drop, Delay: 1}}}},
		"no such action":               {Rules: []Rule{{Action: Action{Kind: 99}}}},
		"no such direction":            {Rules: []Rule{{Match: Match{Direction: 2}}}},
		"qp 16777216; want 1 to 167":   {Rules: []Rule{{Match: Match{QPN: 1 << 24}}}},
	} {
		require.ErrorContains(t, spec.Validate(), want)
		_, err := New(nil, spec, nil)
		require.ErrorContains(t, err, want)
	}
}

// FuzzParse checks that an accepted text is written back in a form with the same meaning.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"loss 1% 25% ecn delay 2ms 0.5ms 1% distribution normal reorder 5% gap 3 duplicate 1% corrupt 0.1% rate 1gbit limit 5 seed 7",
		"loss gemodel 1% 2% 3% 4%; loss state 1% 2%",
		"duplicate out 5%; delay 1ms always; corrupt always; corrupt icrc; drop 3rd in READ_RESPONSE of qp 7 with psn +3; corrupt icrc of 1% ACK; mark ecn first 3; delay 1us FIRST; duplicate always psn 0x3",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(spec.String())
		require.NoError(t, err, "written as %q", spec)
		require.Equal(t, spec.String(), again.String())
		require.Equal(t, spec.Rules, again.Rules)
		require.Equal(t, spec.Loss, again.Loss)
	})
}
