// Package cluster simulates the hosts of a cluster in one process: each has an adapter of package
// rnic, a processor, and goroutines that run unmodified programs over verbs, for example ranks
// of package mpi. Adapters, protocols and programs are the real code. Only the clock, the network
// and the processor time are modelled, by the parameters in Costs.
//
//	c := cluster.New(cluster.Options{Seed: 1, Hosts: 1024, Costs: cluster.InfiniHost})
//	err := c.Run(func(h *cluster.Host) error {
//		w, err := mpi.Init(h.OpenDevice, mpi.Options{Manager: h.Manager(), Net: mpi.UD})
//		...
//		began := vtime.Now()
//		err = w.Barrier()
//		took := vtime.Since(began)             // virtual time
//		...
//		return w.Finalize()
//	})
//
// # Execution
//
// One goroutine runs everything. The goroutines of a host are coroutines (package iter), which
// block in vtime.WaitUntil only. Events are processed in the order of their times, and of their
// creation among equal times, so that a seed reproduces a run to the nanosecond.
//
// When something happens at a host (a packet arrives, a timer expires, its processor becomes
// free), Cluster.runHost polls its adapter and resumes the goroutines whose conditions have
// become true, until neither has work. All of this happens at one time of the network, while the
// processor time that it takes is added up (Host.ChargeTime). The host's own clock includes it, so a
// packet leaves after the time that was spent before, and the host runs again when the processor
// is free. A host sees a packet that arrives meanwhile only then, as a busy processor does.
//
// Hosts that share a processor run as processes of one machine: a goroutine that waits for a device
// polls it, yields and sleeps, and the processor runs the hosts in turn (type processor).
//
// # Limits
//
// A process runs one simulation at a time, and no other devices meanwhile (package vtime). Time
// passes for a program only in calls that move packets, and in Host.ComputeFor. A program that polls
// without blocking does not advance.
package cluster
