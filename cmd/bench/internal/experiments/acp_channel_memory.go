package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// overFormula is the unit of differences to the paper's formulas.
const overFormula = "B over the formula"

// channelRoles are the ends of a channel, in the order of their ranks, with the paper's formulas in
// bytes for n slots of s bytes: fixed + slot n + n s.
var channelRoles = [2]struct {
	name, source, formula string
	fixed, slot           int
}{
	{"sender", "ACP table II", "168 + 16 n + n s bytes", 168, 16},
	{"receiver", "ACP table III", "160 + n s bytes", 160, 0},
}

// Suffixes of the series of one end of a channel. That without a suffix is measured: the growth of the
// process's live heap by a channel between ranks that are connected.
const (
	firstSuffix   = "-first"   // the first channel between two ranks, with their connections
	accountSuffix = "-account" // acp.Channel.Memory: the bytes requested from the allocator
)

// channelSide returns the series of one side of a channel.
func channelSide(role string, slots int) string { return fmt.Sprintf("%s-%d-slots", role, slots) }

// Bounds of the measured memory by the account. The allocator rounds up by at most a quarter, and of
// large objects by less than its page of 8 KiB. With both bounds an account that misses or adds a slot
// is refuted at one of the slot sizes.
var measuredOverAccount = bench.Within(1, 1.4)

const measuredBeyondAccount = 12 << 10 // bytes

func acpChannelMemoryClaims() (claims []bench.Statement) {
	for _, role := range channelRoles {
		sides := func(suffix string) (of []string) {
			for _, n := range []int{2, 4, 8} {
				of = append(of, channelSide(role.name, n)+suffix)
			}
			return of
		}
		overFormulaOf := func(suffix string) bench.Comparison {
			return bench.Value{Of: sides(suffix), Unit: overFormula, At: bench.Everywhere(measure.Bytes), Limit: bench.AtMost(0)}
		}
		var account bench.All
		for _, side := range sides("") {
			account = append(account,
				bench.Ratio{Of: []string{side}, Over: []string{side + accountSuffix}, Unit: measure.Bytes, At: bench.Everywhere(measure.Bytes), Limit: measuredOverAccount},
				bench.Value{Of: []string{side}, Minus: side + accountSuffix, Unit: measure.Bytes, At: bench.Everywhere(measure.Bytes), Limit: bench.AtMost(measuredBeyondAccount)})
		}
		claims = append(claims, bench.Statement{
			Source:   role.source,
			Sentence: fmt.Sprintf("The live heap of a %s grows by at most %s, with n slots of s bytes, if the ranks are connected.", role.name, role.formula),
			Paper:    role.formula,
			Compare:  overFormulaOf(""),
			Because:  "the paper counts the bytes requested from malloc; the heap also has what the allocator adds to round them up, and the registration",
		}, bench.Statement{
			Source:   role.source,
			Sentence: "With the first channel between two ranks, which makes their connections, it grows by at most as much.",
			Paper:    role.formula,
			Compare:  overFormulaOf(firstSuffix),
			Because:  "the paper's count has no connections; here the first message between two ranks makes them, with their queue pairs",
		}, bench.Statement{
			Source:   role.source,
			Sentence: fmt.Sprintf("By the paper's count, the bytes requested from the allocator, the %s takes at most %s.", role.name, role.formula),
			Paper:    role.formula,
			Compare:  overFormulaOf(accountSuffix), Exact: true,
		}, bench.Statement{
			Source:   bench.Adapter,
			Sentence: fmt.Sprintf("The live heap of a %s grows by 1 to 1.4 times the bytes of that count (Channel.Memory), and by at most 12 KiB more than them.", role.name),
			Compare:  account, Exact: true,
		})
	}
	return claims
}

// channelMemory emits the memory of both ends of channels between two processes: its growth by the
// first channel and by each further one, and the account of it.
func channelMemory(ctx context.Context, r *run) error {
	for _, size := range r.Ints("slot-sizes") {
		r.Step("slots of %s", sizeName(size))
		for _, n := range r.Ints("slots") {
			c := acpbench.Channel{SlotSize: size, SendSlots: n, RecvSlots: n}
			var rounds [2][]acpbench.ChannelMemory
			for range r.Int("rounds") {
				ends, err := endsMemory(ctx, c)
				if err != nil {
					return err
				}
				for i, m := range ends {
					rounds[i] = append(rounds[i], m)
				}
			}
			for i, role := range channelRoles {
				emitEnd(r, channelSide(role.name, n), size, role.fixed+role.slot*n+n*size, rounds[i])
			}
		}
	}
	return nil
}

// endsMemory measures channels in a job of their own, in batches of 4 to 40 of about 16 MiB.
func endsMemory(ctx context.Context, c acpbench.Channel) (ends [2]acpbench.ChannelMemory, err error) {
	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
	if err != nil {
		return ends, err
	}
	defer job.Close()
	return job.ChannelMemory(ctx, c, min(max(4, 16<<20/(c.SendSlots*c.SlotSize)), 40))
}

// emitEnd emits the memory of one end with slots of size bytes, and its difference to the formula.
func emitEnd(r *run, series string, size, formula int, rounds []acpbench.ChannelMemory) {
	var each, first, account []float64
	for _, m := range rounds {
		each, first, account = append(each, m.Each), append(first, m.First), append(account, m.Account)
	}
	for _, s := range []struct {
		suffix  string
		figures []float64
	}{{"", each}, {firstSuffix, first}, {accountSuffix, account}} {
		row := bench.Row{Series: series + s.suffix, X: float64(size), XUnit: measure.Bytes, Y: measure.Median(s.figures), YUnit: measure.Bytes, Rounds: s.figures}
		r.Emit(row)
		row.Y, row.YUnit, row.Rounds = row.Y-float64(formula), overFormula, nil
		r.Emit(row)
	}
}
