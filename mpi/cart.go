package mpi

type cart struct{}
