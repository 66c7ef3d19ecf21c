// Package debug looks into running devices from outside: it finds the endpoints
// (package endpoint) that processes have, asks them, and makes metrics for
// Prometheus of what they answer.
//
//	for _, p := range must(debug.Discover(ctx)) {
//		fmt.Println(p.Report.Process.PID, p.Report.Counters.SentPkts)
//	}
//
// A program that imports it has /metrics at its own endpoints, which others do
// without. Programs outside of this module do so through package
// rnic/rnicdebug.
package debug
