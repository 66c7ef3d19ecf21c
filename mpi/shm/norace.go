//go:build !race

package shm

func happens()       {}
func happensBefore() {}
