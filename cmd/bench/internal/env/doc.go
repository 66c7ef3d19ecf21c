// Package env describes the machine that figures come from, for reports:
//
//	fmt.Fprintln(os.Stderr, env.Read())
//
// A figure without its machine means little, so the description goes with every
// report and to stderr before every run.
package env
