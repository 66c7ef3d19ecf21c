// Package cmtool has the parts shared by ucmatose and udaddy, which differ in the
// type of their queue pairs: options, the frame of a run, and a node for each connection.
//
//	type runner struct {
//		*cmtool.Options
//		nodes cmtool.Nodes[*node]
//	}
//
//	r := runner{&o, make(cmtool.Nodes[*node], o.Connections)}
//	err := o.Run(ctx, r.server, r.client)
package cmtool
