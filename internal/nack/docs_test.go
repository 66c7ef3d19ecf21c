package nack

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentedExample checks the worked example of docs/ud-messages.md.
func TestDocumentedExample(t *testing.T) {
	text, err := os.ReadFile("../../docs/ud-messages.md")
	require.NoError(t, err)
	p := newPair(t, Options{})
	p.lose = loseOnce(func(_ int, h *Header) bool { return h.Kind == Data && h.Seq == 1 })
	for _, m := range strings.Fields("a b c d") {
		p.send(0, m)
	}
	p.run(50 * us)
	p.send(1, "answer")
	p.run(5 * ms)
	p.lose = func(from int, h *Header) bool { return from == 0 && h.Kind == Data && h.TxNum < 8 }
	p.send(0, "tail")
	p.run(1000 * ms)
	require.Equal(t, strings.Fields("a b c d tail"), p.got[1])
	require.Equal(t, []string{"answer"}, p.got[0])
	block := ""
	for _, line := range p.log {
		block += "    " + line + "\n"
	}
	require.Contains(t, string(text), "\n\n"+block+"\n", "docs/ud-messages.md should have:\n%s", block)
}
