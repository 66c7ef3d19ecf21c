package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/internal/cmdline"
)

// usageError is a mistake in the command line or in the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// unknownCommand accepts no arguments: a word that is no command ends there.
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
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usageErrorf("unknown command %q; there are %s, and without one the tour (`bench --help`)", args[0], strings.Join(names, ", "))
}

// noSubcommandArgs accepts no arguments of a command that has others below it: a word
// that is none of them ends there.
func noSubcommandArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return usageErrorf("unknown command %q of `%s`; there are %s", args[0], c.CommandPath(), strings.Join(names, ", "))
}

// noArgs accepts no arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%s takes no argument, but there is %q", c.CommandPath(), args[0])
	}
	return nil
}

// flagError says where a flag belongs that the command does not have.
func flagError(c *cobra.Command, err error) error {
	if no := (*pflag.NotExistError)(nil); errors.As(err, &no) {
		var owners []string
		for _, sub := range c.Commands() {
			if sub.Flags().Lookup(no.GetSpecifiedName()) != nil {
				owners = append(owners, "`"+sub.CommandPath()+"`")
			}
		}
		if len(owners) > 0 {
			return usageErrorf("%w: it is a flag of %s", err, strings.Join(owners, " and "))
		}
	}
	return &usageError{cmdline.FlagError(c, err)}
}
