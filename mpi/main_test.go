package mpi_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has rapid draw fewer programs, unless the command line says how many.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
