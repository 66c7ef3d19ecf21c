package coll_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain reduces the number of calls that rapid draws for each of the many algorithms, unless the
// command line sets it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
