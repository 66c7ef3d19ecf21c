package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// onDemand is why there is no paging on demand.
const onDemand = "nothing is pinned, so nothing is paged on demand"

// unusedFlags are flags of an original that ask for what is not here. They are
// refused with the reason, and not silently ignored.
type unusedFlags []unusedFlag

type unusedFlag struct{ name, why string }

// add defines a flag without a value. The help does not show it.
func (u *unusedFlags) add(f *pflag.FlagSet, name, letter, why string) {
	f.BoolP(name, letter, false, why)
	f.MarkHidden(name)
	*u = append(*u, unusedFlag{name, why})
}

// check refuses those that were given.
func (u unusedFlags) check(c *cobra.Command) error {
	for _, flag := range u {
		if c.Flags().Changed(flag.name) {
			return usage("--%s cannot be: %s", flag.name, flag.why)
		}
	}
	return nil
}
