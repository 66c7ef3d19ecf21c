package mpirun

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestLinesAreWhole checks that lines of several ranks, written in any pieces and any order, are
// printed as a whole, with each rank's in order.
func TestLinesAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		to := &lineWriter{&out, new(lineState)}
		n := rapid.IntRange(1, 4).Draw(t, "ranks")
		prefix := rapid.Bool().Draw(t, "prefix")
		streams, left, want := make([]*rankStream, n), make([]string, n), make([][]string, n)
		for i := range streams {
			name := ""
			if prefix {
				name = fmt.Sprintf("[%d] ", i)
			}
			streams[i] = newRankStream(to, name, false)
			for range rapid.IntRange(0, 5).Draw(t, "lines") {
				text := string(rune('a'+i)) + strings.Repeat("x", rapid.IntRange(0, 8).Draw(t, "length"))
				left[i] += text + "\n"
				want[i] = append(want[i], name+text)
			}
		}
		if rapid.Bool().Draw(t, "no last end") {
			left[0] = strings.TrimSuffix(left[0], "\n")
		}
		for {
			var some []int
			for i, text := range left {
				if text != "" {
					some = append(some, i)
				}
			}
			if len(some) == 0 {
				break
			}
			i := rapid.SampledFrom(some).Draw(t, "rank")
			size := rapid.IntRange(1, len(left[i])).Draw(t, "piece")
			n, err := streams[i].Write([]byte(left[i][:size]))
			require.NoError(t, err)
			require.Equal(t, size, n)
			left[i] = left[i][size:]
		}
		for _, s := range streams {
			require.NoError(t, s.close())
		}
		got := make([][]string, n)
		for text := range strings.Lines(out.String()) {
			text = strings.TrimSuffix(text, "\n")
			bare := text
			if prefix {
				bare = text[len("[0] "):]
			}
			got[bare[0]-'a'] = append(got[bare[0]-'a'], text)
		}
		require.Equal(t, want, got)
	})
}

// TestPrompts checks that a prompt, which is printed before its end of line, stays readable:
// output of another rank starts a new line.
func TestPrompts(t *testing.T) {
	var out, diag bytes.Buffer
	last := new(lineState)
	a := newRankStream(&lineWriter{&out, last}, "[0] ", false)
	b := newRankStream(&lineWriter{&diag, last}, "[1] ", false)
	write := func(s *rankStream, text string) {
		_, err := s.Write([]byte(text))
		require.NoError(t, err)
	}
	write(a, "how many? ")
	require.Empty(t, out.String())
	require.NoError(t, a.flush())
	require.Equal(t, "[0] how many? ", out.String())
	write(a, "ok\nand")
	require.Equal(t, "[0] how many? ok\n", out.String())
	require.NoError(t, a.flush())
	write(b, "oops\n")
	require.Equal(t, "\n[1] oops\n", diag.String())
	write(a, " more\n")
	require.Equal(t, "[0] how many? ok\n[0] and[0]  more\n", out.String()) // two files here; on a terminal the line before is b's
}

// TestBytesWithoutLines checks that a stream without ends of lines is passed through unchanged.
func TestBytesWithoutLines(t *testing.T) {
	var out bytes.Buffer
	s := newRankStream(&lineWriter{&out, new(lineState)}, "", false)
	block := strings.Repeat("\x00\x01\x02", 50000)
	for range 4 {
		_, err := s.Write([]byte(block))
		require.NoError(t, err)
		require.LessOrEqual(t, len(s.b), maxLine)
	}
	require.NoError(t, s.close())
	require.Equal(t, strings.Repeat(block, 4), out.String())
}
