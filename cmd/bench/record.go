package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/bench/internal/ledger"
)

func (a *app) recordCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "record [DIR]",
		Short: "Record results in the repository and write " + ledger.PagePath,
		Long: "Copies the figures that report or `bench run --out DIR` has saved into the repository, in\n" +
			"whose root it must run, and writes the page of all statements and outcomes. Without DIR it\n" +
			"only writes the page.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			names, err := ledger.Record(".", dir, a.registry)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "%d experiments recorded, %s written\n", len(names), ledger.PagePath)
			return err
		},
	}
}
