package oob_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

func TestTermsCheck(t *testing.T) {
	mine := oob.Params{{"test", "send_bw"}, {"-c", "RC"}, {"-s", "65536"}}
	for _, c := range []struct {
		name string
		peer oob.Params
		want string
	}{
		{"same", oob.Params{{"test", "send_bw"}, {"-c", "RC"}, {"-s", "65536"}}, ""},
		{"other order", oob.Params{{"-s", "65536"}, {"-c", "RC"}, {"test", "send_bw"}}, ""},
		{"one value", oob.Params{{"test", "send_bw"}, {"-c", "UC"}, {"-s", "65536"}}, "-c is RC here and UC at the peer"},
		{"two values", oob.Params{{"test", "write_bw"}, {"-c", "RC"}, {"-s", "2"}},
			"test is send_bw here and write_bw at the peer, -s is 65536 here and 2 at the peer"},
		{"missing there", oob.Params{{"test", "send_bw"}, {"-c", "RC"}}, "-s is 65536 here and not set at the peer"},
		{"missing here", oob.Params{{"test", "send_bw"}, {"-c", "RC"}, {"-s", "65536"}, {"-b", "on"}}, "-b is not set here and on at the peer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			peer, err := oob.ParseParams(c.peer.Encode())
			require.NoError(t, err)
			require.Equal(t, c.peer, peer)
			err = mine.Check(peer)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, oob.ErrParams)
			require.EqualError(t, err, oob.ErrParams.Error()+": "+c.want)
		})
	}
}

// FuzzParseTerms checks that ParseTerms accepts only what Encode writes.
func FuzzParseTerms(f *testing.F) {
	f.Add(oob.Params{{Option: "-s", Value: "1"}}.Encode())
	f.Add([]byte(strings.Repeat("x", oob.ParamsLen)))
	f.Fuzz(func(t *testing.T, b []byte) {
		terms, err := oob.ParseParams(b)
		if err != nil {
			return
		}
		require.Equal(t, b, terms.Encode())
	})
}
