package experiments

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	simulated "github.com/softrnic/softrnic/internal/cluster"
)

// TestSimCosts requires that each cost of the preset has a series of sim-costs, which changes no
// other.
func TestSimCosts(t *testing.T) {
	changed := map[string]string{"MTU": "not reached by 8 bytes"}
	given := reflect.ValueOf(simulated.InfiniHost)
	for _, c := range simCosts {
		costs := simulated.InfiniHost
		c.scale(&costs, 2)
		for i := range given.NumField() {
			name := given.Type().Field(i).Name
			if !reflect.DeepEqual(reflect.ValueOf(costs).Field(i).Interface(), given.Field(i).Interface()) {
				require.Empty(t, changed[name], "%s", c.series)
				changed[name] = c.series
			}
		}
	}
	for i := range given.NumField() {
		if name := given.Type().Field(i).Name; !given.Field(i).IsZero() {
			require.NotEmpty(t, changed[name], "%s has no series", name)
		}
	}
}
