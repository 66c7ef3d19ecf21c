package cmdline_test

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
)

// The text for an invalid flag contains the value and the valid values.
func ExampleFlagError() {
	tool := &cobra.Command{Use: "tool", SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
	tool.SetFlagErrorFunc(cmdline.FlagError)
	tool.Flags().IntP("iters", "n", 1000, "messages to exchange")
	tool.SetArgs([]string{"-n", "many"})
	fmt.Println(tool.Execute())
	// Output: -n, --iters: "many": want a whole number
}
