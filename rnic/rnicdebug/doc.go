// Package rnicdebug lets one look into a running device: `softrnic stat`,
// Prometheus, captures and profiles, on an endpoint for the user alone.
//
//	dev, err := rnic.Open(rnic.Options{})
//	...
//	server, err := rnicdebug.FromEnvironment(dev)
//	...
//	defer server.Close()
//
// Then SOFTRNIC_DEBUG in the environment decides whether there is an endpoint
// and where: "auto" for a Unix socket that `softrnic stat` finds by itself,
// "unix:/path" for one elsewhere, "127.0.0.1:9479" for one that Prometheus can
// scrape. Without it, or with "off", there is none.
//
// It is a package of its own so that programs which do not want an HTTP server
// in them do not get one. docs/observability.md shows what is to be seen.
package rnicdebug
