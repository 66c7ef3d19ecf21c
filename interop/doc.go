// Package interop holds the tests against Linux: the kernel's rdma_rxe, its
// libraries and its programs, in a guest of package lab.
//
//	go test -tags interop -v -count=1 ./interop/...          the part for continuous integration
//	go test -tags interop -v -count=1 ./interop -matrix wide -timeout 3h     writes docs/rxe-matrix.md
//	go test -tags interop -v -count=1 ./interop -matrix full -timeout 12h    the same in every combination
//
// They need root (or unprivileged user namespaces), /dev/net/tun and QEMU. Where
// one of these is missing, every test is skipped with the reason.
package interop
