package acp_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"slices"
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
	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Minute)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		cancel()
		os.Exit(code)
	}))
}

// isAny reports whether an error is one of some.
func isAny(err error, of ...error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}
