// Package env describes the machine on which figures were measured, for reports:
//
//	fmt.Fprintln(os.Stderr, env.Read())
//
// A figure without its machine means little. The description goes into every
// report, and to stderr before every run.
package env
