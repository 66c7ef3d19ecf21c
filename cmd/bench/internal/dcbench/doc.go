// Package dcbench runs the paper's two applications of DataCutter, the virtual
// microscope and iso-surface rendering, in several processes of this machine:
// over SDP with any of its flow controls, or over Go's TCP in the same way, without
// and with a buffered writer.
//
// A [DataSet] is the input, and the reference image computed without filters.
// A [Cluster] is the processes. An experiment opens one for each
// target and alternates them:
//
//	slide, err := dcbench.NewDataSet(dir, dcbench.Microscope, 8<<20, 1<<10)
//	tcp, err := dcbench.Open(ctx, dcbench.Config{Transport: sdpbench.TCP})
//	defer tcp.Close()
//	nic, err := dcbench.Open(ctx, dcbench.Config{Transport: sdpbench.NIC, Buffers: 8, BufferBytes: 8 << 10})
//	defer nic.Close()
//	v, err := measure.Alternate(ctx, 7, tcp.Rounds(slide, nil), nic.Rounds(slide, nil))
//
// # Placement
//
// As in the paper there are five groups of the microscope's five filters, and
// six groups of the four filters of iso-surface rendering. The paper runs them on 13
// and 12 nodes of two processors. A single machine has fewer cores, and every
// additional process adds context switches to the measurement. Therefore two
// processes are the default, and the filters of a group alternate between them, so
// that every stream crosses the network. A filter is a goroutine, and the system
// schedules them, because the filters of a group need different processor
// time.
//
// The last filters, which have the image, are in the first process.
//
// # Time
//
// The figure is the time from the first unit to the end of the last work on
// any process, excluding connection setup and teardown. Data sets are in
// memory if the system has an in-memory file system, as in the paper.
//
// # Verification
//
// Every image is compared with the reference image of the data set.
package dcbench
