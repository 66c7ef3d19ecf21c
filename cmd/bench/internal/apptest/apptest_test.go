package apptest_test

import (
	"context"
	"errors"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/apptest"
	"github.com/softrnic/softrnic/datacutter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greeting returns a job in which x sends to y, which passes the received text to say.
func greeting(say func(string) error) datacutter.Job {
	filter := func(process func(*datacutter.Work) error) func(datacutter.Instance) (datacutter.Filter, error) {
		return func(datacutter.Instance) (datacutter.Filter, error) {
			return datacutter.FilterFunc(func(_ context.Context, w *datacutter.Work) error { return process(w) }), nil
		}
	}
	return datacutter.Job{
		Group: datacutter.Group{
			Filters: []datacutter.FilterDef{
				{Name: "send", New: filter(func(w *datacutter.Work) error { return w.Out("words").Send([]byte("hello")) })},
				{Name: "say", New: filter(func(w *datacutter.Work) error {
					for unit, err := range w.In("words").Units() {
						if err = errors.Join(err, say(string(unit))); err != nil {
							return err
						}
					}
					return nil
				})},
			},
			Streams: []datacutter.Stream{{Name: "words", From: "send", To: "say", UnitSize: 64}},
		},
		Layout: datacutter.Layout{{Filter: "send", Host: "x"}, {Filter: "say", Host: "y"}},
		Works:  [][]byte{nil},
	}
}

func TestOnHostsFails(t *testing.T) {
	job := greeting(func(string) error { return errors.New("it is hoarse") })
	err := apptest.RunOnHosts(apptest.TimeoutContext(t), []string{"x", "y"}, []datacutter.Job{job, job})
	require.ErrorContains(t, err, "it is hoarse")
}

// TestGolden compares images in all PNG formats that EncodePNG may write.
func TestGolden(t *testing.T) {
	picture := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	picture.Set(1, 1, color.NRGBA{1, 2, 3, 255})
	file := filepath.Join(t.TempDir(), "picture.png")
	require.NoError(t, os.WriteFile(file, apptest.EncodePNG(t, picture), 0o600))
	apptest.CompareGolden(t, file, picture)
	before := apptest.Checksum(picture)
	picture.Set(0, 0, color.White)
	require.NotEqual(t, before, apptest.Checksum(picture))
}
