package mpi_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain reduces the number of programs that rapid draws, unless the command line sets it. The
// program also runs as the ranks that tests start.
func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(playRank(role))
	}
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
