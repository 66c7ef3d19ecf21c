package cmdline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/internal/spelling"
)

// originalPrefixes begin the names of the programs after which commands are named: ib_write_bw,
// ibv_devinfo, osu_latency.
var originalPrefixes = []string{"ibv_", "ib_", "osu_"}

// UnknownCommand returns the error of an unknown subcommand of c. It names the subcommand of c
// at any depth that word stands for, or else lists those of c.
func UnknownCommand(c *cobra.Command, word string) error {
	if nearest := NearestCommand(c, word); nearest != nil {
		return fmt.Errorf("unknown command %q of `%s`; did you mean `%s`?", word, c.CommandPath(), nearest.CommandPath())
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q of `%s`; want one of %s", word, c.CommandPath(), strings.Join(names, ", "))
}

// NearestCommand returns the subcommand of c at any depth with the name nearest to word, or nil.
func NearestCommand(c *cobra.Command, word string) *cobra.Command {
	var names []string
	var commands []*cobra.Command
	collect := func(cs []*cobra.Command) (below []*cobra.Command) {
		for _, sub := range cs {
			if sub.IsAvailableCommand() {
				names, commands = append(names, sub.Name()), append(commands, sub)
				below = append(below, sub.Commands()...)
			}
		}
		return below
	}
	for level := c.Commands(); len(level) > 0; {
		level = collect(level)
	}
	for _, prefix := range originalPrefixes {
		word = strings.TrimPrefix(word, prefix)
	}
	nearest := spelling.Nearest(word, names...)
	for i, name := range names {
		if name == nearest {
			return commands[i]
		}
	}
	return nil
}
