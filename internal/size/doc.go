// Package size parses numbers of bytes with units.
//
//	n, err := size.Parse("64KiB")              // 65536
//	flags.Var(size.Var(&n), "buffer-size", …)  // a flag that takes the same
//
// K and KiB are 1024, M and MiB its square, G and GiB its cube.
package size
