package isosurface_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/cmd/bench/internal/isosurface"
	"github.com/softrnic/softrnic/datacutter"
)

// A view of a volume from another side, by six groups on four hosts.
func Example() {
	volume, err := isosurface.NewVolume(isosurface.SpecFor(64 << 10))
	check(err)
	query := isosurface.Query{Iso: 120, Rotation: [4]int{3, 1, -2, 0}, Size: 100}
	picture, report, err := isosurface.Run(context.Background(), datacutter.NewTCP(""),
		isosurface.Options{Volume: volume, Query: query, Hosts: []string{"client", "a", "b", "c"}})
	check(err)

	reference, err := isosurface.Reference(volume, query)
	check(err)
	fmt.Println(picture.Rect.Size(), "by", len(report.Instances), "filters, the same as without:", bytes.Equal(picture.Pix, reference.Pix))
	// Output: (100,100) by 24 filters, the same as without: true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
