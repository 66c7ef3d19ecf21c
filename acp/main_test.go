package acp_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// ctx ends long after everything should be over.
var ctx context.Context

// TestMain has rapid draw fewer programs, unless the command line says how many.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "10"); err != nil {
		panic(err)
	}
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Second)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		cancel()
		os.Exit(code)
	}))
}
