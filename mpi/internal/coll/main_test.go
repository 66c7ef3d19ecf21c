package coll_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has rapid draw fewer calls of each of the many algorithms, unless the
// command line says how many.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
