// Package debugclient discovers and queries the debug endpoints (package
// internal/debug) of running processes.
//
//	for _, p := range must(debugclient.Discover(ctx)) {
//		fmt.Println(p.Report.Process.PID, p.Report.Counters.SentPkts)
//	}
package debugclient
