package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noODP is why there is no paging on demand.
const noODP = "nothing is pinned, so nothing is paged on demand"

// unsupportedFlags are flags of an original that ask for what is not here. They are
// refused with the reason, and not silently ignored.
type unsupportedFlags []unsupportedFlag

type unsupportedFlag struct{ name, reason string }

// add defines a flag without a value. The help does not show it.
func (u *unsupportedFlags) add(f *pflag.FlagSet, name, letter, why string) {
	f.BoolP(name, letter, false, why)
	f.MarkHidden(name)
	*u = append(*u, unsupportedFlag{name, why})
}

// rejectGiven refuses those that were given.
func (u unsupportedFlags) rejectGiven(c *cobra.Command) error {
	for _, flag := range u {
		if c.Flags().Changed(flag.name) {
			return usageErrorf("--%s cannot be: %s", flag.name, flag.reason)
		}
	}
	return nil
}
