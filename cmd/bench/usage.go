package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
)

// A usageError is an error in the command line or in the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// unknownCommand rejects all arguments of the root command, with a hint for names of
// experiments.
func (a *app) unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	switch found, err := a.registry.Find(args[0]); {
	case err == nil && len(found) == 1 && found[0].Name == args[0]:
		return usageErrorf("%q is an experiment: `bench run %[1]s`", args[0])
	case err == nil:
		return usageErrorf("%q is a source of experiments: `bench run %[1]q`", args[0])
	}
	if cmdline.NearestCommand(c, args[0]) == nil {
		if name := a.registry.Nearest(args[0]); name != "" {
			return usageErrorf("unknown command %q; did you mean `bench run %s`?", args[0], name)
		}
	}
	return &usageError{cmdline.UnknownCommand(c, args[0])}
}

// noSubcommandArgs rejects unknown subcommands of a command.
func noSubcommandArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{cmdline.UnknownCommand(c, args[0])}
}

// noArgs rejects all arguments of a command.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%s: unexpected argument %q", c.CommandPath(), args[0])
	}
	return nil
}

// flagError adds a hint to the error of an unknown flag that belongs to another command.
func (a *app) flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); len(words) > 0 && !c.HasParent() {
		return a.unknownCommand(c, words)
	}
	if no := (*pflag.NotExistError)(nil); errors.As(err, &no) {
		var owners []string
		for _, sub := range c.Commands() {
			if sub.Flags().Lookup(no.GetSpecifiedName()) != nil {
				owners = append(owners, "`"+sub.CommandPath()+"`")
			}
		}
		if len(owners) > 0 {
			return usageErrorf("%w; the flag belongs to %s", err, strings.Join(owners, " and "))
		}
	}
	return &usageError{cmdline.FlagError(c, err)}
}
