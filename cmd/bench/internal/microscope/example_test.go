package microscope_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"log"

	"github.com/softrnic/softrnic/cmd/bench/internal/microscope"
	"github.com/softrnic/softrnic/datacutter"
)

// A view of the middle of a slide with zoom 4, by five groups on four hosts.
func Example() {
	slide, err := microscope.NewSlide(microscope.SpecFor(256<<10, 1024))
	check(err)
	query := microscope.Query{Region: image.Rect(40, 80, 240, 240), Zoom: 4}
	picture, report, err := microscope.Run(context.Background(), datacutter.NewTCP(""),
		microscope.Options{Slide: slide, Query: query, Hosts: []string{"client", "a", "b", "c"}})
	check(err)

	reference, err := microscope.Reference(slide, query)
	check(err)
	fmt.Println(picture.Rect.Size(), "by", len(report.Instances), "filters, the same as without:", bytes.Equal(picture.Pix, reference.Pix))
	// Output: (50,40) by 25 filters, the same as without: true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
