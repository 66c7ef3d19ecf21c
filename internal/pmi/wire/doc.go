// Package wire encodes and decodes the messages of PMI-1 and PMI-2.
//
// A message is a command with attributes. PMI-1 writes it in one line,
//
//	cmd=put kvsname=kvs_4711_0 key=P0-card value=192.0.2.1:4791
//
// and PMI-2 with its length in six characters in front and no line ends:
//
//	38    cmd=kvs-put;key=P0-card;value=1.2.3.4;
//
// Both begin with the line cmd=init, which negotiates the version.
//
//	m := wire.New("kvs-put", "key", key, "value", value)
//	b, err := m.Append(nil, wire.PMI2)
//
//	m, n, err := wire.Next(buf) // n == 0: incomplete
//
// The protocols are those of MPICH (src/pmi/maint/pmi-1.1.txt and pmi-2.0.txt there);
// Slurm's plugin mpi/pmi2 speaks both.
package wire
