// Package neighbor is the part of ACP's middle layer for programs that exchange data with the same few ranks
// again and again, such as the halo of a grid: a channel in each direction, made before and freed after.
//
//	to, from := neighbor.Grid(p.Rank(), []int{4, 4}, true) // a torus
//	x, err := neighbor.Open[float64](p, to, from, acp.ChannelOptions{})
//	for step := range steps {
//		err = x.Exchange(ctx, out, in) // out[i] to rank to[i], in[i] from rank from[i]
//	}
//	err = x.Close(ctx)
//
// The memory of an Exchange is that of its channels, see [Exchange.Memory]: it grows with the number of
// neighbors and not with that of ranks.
package neighbor
