package rnicdebug

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/wire"
)

var update = flag.Bool("update", false, "write the tables of docs/observability.md anew")

// TestDocs compares the tables of docs/observability.md with the counters and drop reasons.
func TestDocs(t *testing.T) {
	const path = "../../docs/observability.md"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	doc := string(text)
	for _, table := range []struct {
		name, column string
		rows         iter.Seq2[string, string]
	}{
		{"counters", "counter", counterRows("", rnic.Counters{}.All())},
		{"link counters", "counter", counterRows("link_", rnic.LinkCounters{}.All())},
		{"fault counters", "counter", counterRows("fault_", rnic.FaultCounters{}.All())},
		{"drops", "reason", dropRows},
	} {
		begin := "<!-- " + table.name + " -->\n"
		found := regexp.MustCompile("(?s)"+begin+".*?<!-- end -->").FindAllString(doc, -1)
		require.Len(t, found, 1, table.name)
		var want strings.Builder
		fmt.Fprintf(&want, "%s| %s | meaning |\n| --- | --- |\n", begin, table.column)
		for name, meaning := range table.rows {
			fmt.Fprintf(&want, "| `%s` | %s |\n", name, meaning)
		}
		want.WriteString("<!-- end -->")
		if *update {
			doc = strings.Replace(doc, found[0], want.String(), 1)
			continue
		}
		require.Equal(t, want.String(), found[0], "`go test ./rnic/rnicdebug -update` writes the tables anew")
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(doc), 0o644))
	}
}

// counterRows marks counters that only a device has.
func counterRows(prefix string, all iter.Seq2[string, uint64]) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name := range all {
			text := rnic.CounterDescription(prefix + name)
			if deviceCounterDescs[name] != nil {
				text += " Device only."
			}
			if !yield(name, text) {
				return
			}
		}
	}
}

func dropRows(yield func(string, string) bool) {
	for r := wire.Drop(1); r < wire.NumDrops; r++ {
		if !yield(r.String(), r.Description()) {
			return
		}
	}
}
