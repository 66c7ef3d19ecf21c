// Package debug discovers and queries the debug endpoints (package endpoint) of
// running processes, and converts their reports to Prometheus metrics.
//
//	for _, p := range must(debug.Discover(ctx)) {
//		fmt.Println(p.Report.Process.PID, p.Report.Counters.SentPkts)
//	}
//
// Importing the package adds /metrics to the endpoints of the program itself.
// Programs outside of this module import package rnic/rnicdebug instead.
package debug
