// Command engine is the shared library libsoftrnic-engine.so: the public functions of
// libibverbs and librdmacm on softrnic devices, for programs in any language.
//
// The C files know the ABI of rdma-core's headers: they own the structures that programs
// see, their event queues and their work-request builders. Each structure has a handle, which
// the Go files look up: calls that rdma-core hands to a driver in the kernel go to a device of
// package rnic here. The functions have the prefix softrnic_, and the preloaded library (see
// ../preload) makes them public under their own names at the first use.
//
// A call enters Go once for up to 16 work requests, which costs about 50 ns. A poll of an empty
// completion queue drives the device, as it does for Go programs, so that a program that
// polls needs no other thread.
//
// After a fork the child has none of the engine's threads. All calls fail there with EIO and
// none hangs, as ibv_fork_init(3) leaves the child without the device.
package main

func main() {}
