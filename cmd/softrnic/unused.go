package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noODP is the reason for the absence of on-demand paging.
const noODP = "memory is not pinned, so on-demand paging does not apply"

// unsupportedFlags are flags of an original for features that do not exist here. They are refused
// with the reason.
type unsupportedFlags []unsupportedFlag

type unsupportedFlag struct{ name, reason string }

// add defines a hidden flag without a value.
func (u *unsupportedFlags) add(f *pflag.FlagSet, name, letter, reason string) {
	f.BoolP(name, letter, false, reason)
	f.MarkHidden(name)
	*u = append(*u, unsupportedFlag{name, reason})
}

// rejectGiven returns a usageError for a flag that was given.
func (u unsupportedFlags) rejectGiven(c *cobra.Command) error {
	for _, flag := range u {
		if c.Flags().Changed(flag.name) {
			return usageErrorf("--%s: not supported: %s", flag.name, flag.reason)
		}
	}
	return nil
}
