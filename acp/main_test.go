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

	"github.com/softrnic/softrnic/internal/wiretest"
)

// ctx expires long after every test should be finished.
var ctx context.Context

// TestMain makes rapid draw fewer programs, unless the command line sets the number.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "10"); err != nil {
		panic(err)
	}
	wiretest.SkipExceptions("acp")
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Minute)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		cancel()
		os.Exit(code)
	}))
}

// isAny reports whether err matches one of several errors.
func isAny(err error, of ...error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}
