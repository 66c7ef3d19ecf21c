package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := cmdline.ReadVersion()
			if a.json {
				return a.writeJSON(v)
			}
			fmt.Fprintln(a.stdout, c.Root().Name(), v)
			return nil
		},
	}
}
