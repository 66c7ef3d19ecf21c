package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	_ "github.com/softrnic/softrnic/cmd/bench/internal/experiments"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// Every experiment that the summary shows is there, and has a place in the tour.
func TestHeadlinesAreExperiments(t *testing.T) {
	for _, name := range report.HeadlineExperiments() {
		found, err := bench.Default.Find(name)
		require.NoError(t, err)
		require.NotNil(t, found[0].Tour, name)
	}
}
