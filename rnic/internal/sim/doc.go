// Package sim is a deterministic simulation: adapters on an in-memory network with
// a virtual clock. One goroutine runs everything, and keys, queue pair numbers and
// packet losses derive from one seed, so that a seed reproduces a run: the same
// packets at the same nanoseconds.
//
//	s := sim.New(42)
//	a, err := s.AddDevice(sim.DeviceOptions{Name: "a"})
//	b, err := s.AddDevice(sim.DeviceOptions{Name: "b", Impair: "loss 5%"})
//	...                                       // domains, queues, regions: plain verbs
//	err = s.Connect(sim.Endpoint{Device: a, QP: qa}, sim.Endpoint{Device: b, QP: qb})
//	qa.PostSend(...)
//	s.Run(nil)                                // until no event is left
//
// The clock jumps from event to event: the arrival of a packet, the end of a delay
// injected by impair, a timer of a queue pair. At each event the adapters concerned
// run until they are idle, then their applications (Device.App) are called.
//
// Record keeps a trace of all packets and their deliveries. Memory should
// be registered with AccessZeroBased where runs are to be compared byte for
// byte: real addresses differ from process to process.
//
// The tests of this package replay the scripts of testdata/scenario (package
// scenario) and run random programs on random networks by the thousand:
//
//	go test ./rnic/internal/sim -run Scenario           # -update writes the expected output anew
//	go test ./rnic/internal/sim -run Seeds              # 10,000 seeds, 300 with -short; SOFTRNIC_SEEDS=500 or =20000-30000
//	go test ./rnic/internal/sim -run Seeds -sim.seed=7  # one of them, with its trace
package sim
