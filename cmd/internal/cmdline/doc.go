// Package cmdline contains the parts of the command line that the project's commands
// share: the texts of invalid flags, the version of the build, and a standard output whose
// lost data is an error.
//
//	out := cmdline.NewOutput(os.Stdout)
//	root := &cobra.Command{Use: "tool", Version: cmdline.ReadVersion().String()}
//	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return cmdline.FlagError(c, err) })
//	root.SetOut(out)
//	err := errors.Join(root.Execute(), out.Err())
//
// Flags that count bytes are those of package size: 1024, 1K and 1KiB are the same.
package cmdline
