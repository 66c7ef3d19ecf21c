package cmdline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/internal/spelling"
)

// valueHints has the accepted values of a flag by its type (pflag.Value.Type), where the errors
// are those of packages strconv and time. Other values describe themselves in their errors.
var valueHints = map[string]string{
	"int": "a whole number", "int64": "a whole number", "intSlice": "whole numbers with commas between",
	"uint": "a whole number from 0", "uint8": "a whole number from 0 to 255", "uintSlice": "whole numbers from 0 with commas between",
	"float64": "a number", "bool": "true or false", "duration": "a time such as 10s or 1m30s",
}

// FlagError returns the error of a mistake in the flags of c: the flag, the refused value and the
// accepted values. The error of an unknown flag names the nearest known one.
// Behind the name of an unknown subcommand the name is the mistake.
func FlagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); len(words) > 0 && c.HasSubCommands() {
		return UnknownCommand(c, words[0]) // the flags are not those of c
	}
	var invalid *pflag.InvalidValueError
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		if nearest := nearestFlag(c, unknown); nearest != "" {
			return fmt.Errorf("%w; did you mean %s?", err, nearest)
		}
	}
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%w; `%s --help` lists the flags", err, c.CommandPath())
	}
	flag := invalid.GetFlag()
	name := "--" + flag.Name
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", " + name
	}
	var number *strconv.NumError
	want, known := valueHints[flag.Value.Type()]
	if known && (errors.As(err, &number) || strings.HasPrefix(invalid.Unwrap().Error(), "time: ")) {
		return fmt.Errorf("%s: %q: want %s", name, invalid.GetValue(), want)
	}
	return fmt.Errorf("%s: %w", name, invalid.Unwrap())
}

// nearestFlag returns the flag of c that an unknown one stands for, or "". Shorthands stand for
// themselves.
func nearestFlag(c *cobra.Command, unknown *pflag.NotExistError) string {
	if unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if nearest := spelling.Nearest(unknown.GetSpecifiedName(), names...); nearest != "" {
		return "--" + nearest
	}
	return ""
}

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
