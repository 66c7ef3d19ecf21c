// Package shm provides memory that is shared by several processes of a host, and a
// board in it, by which they exchange data without system calls.
//
// One process creates a [Segment] and sends the others its name. They open it and
// confirm; then the first process unlinks the name. The memory lasts as long as a
// process has it mapped.
//
//	s, err := shm.Create(shm.BoardSize(ranks, room))      // rank 0
//	s, err := shm.Open(name, shm.BoardSize(ranks, room))  // all others
//	s.Unlink()                                            // rank 0, when all have opened it
//	b := shm.NewBoard(s.Bytes(), ranks, room, rank)
//
// A [Board] is used in rounds, which all ranks make alike: each rank writes its slot
// and shows it, reads the slots of the others, and ends the round. A Board does not
// block: package mpi makes progress on the network meanwhile.
//
//	b.BeginRound(round)                                   // 1, 2, ...
//	for r := range ranks { for !b.IsFree(r) { ... } }     // no rank reads the slot any more
//	copy(b.Slot(rank), data)
//	b.Show(sign)
//	for r := range ranks { for !b.HasShown(r) { ... } use(b.Slot(r)) }
//	b.EndRound()
package shm
