package mpi_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has rapid draw fewer programs, unless the command line says how many. The
// program is also the ranks that tests start.
func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(playRank(role))
	}
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
