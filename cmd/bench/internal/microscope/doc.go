// Package microscope is the virtual microscope on DataCutter: a client looks at
// a region of a digitized slide at some magnification, and five filters project
// the slide's pixels onto the grid of the picture.
//
//	read -> decompress -> clip -> zoom -> view
//
// A [Slide] is a file, or anything that can be read at an offset: tiles at
// several resolutions, each compressed with zstd. [Generate] makes slides of
// any size that look like stained tissue, the same ones on every machine.
//
//	slide, err := microscope.NewSlide(microscope.SpecFor(64<<20, 1024)) // 64 MiB of pixels, tiles for units of 1 KiB
//	picture, report, err := microscope.Run(ctx, datacutter.TCP{}, microscope.Options{Slide: slide})
//	fmt.Println(report.Elapsed())
//
// One unit is one tile at its stage of the group: compressed, as pixels, as the
// pixels that lie in the region, as sums for the picture's pixels. What is
// drawn is cut into bands, each a work, which the instances of the group share.
//
// For hosts in several processes each makes an [App] with the same [Options]
// and gives [App.Job] to a node:
//
//	app, err := microscope.New(options)
//	report, err := node.Run(ctx, app.Job(), "node03", addrs)
//	picture, err := app.Picture() // on the host with the views, by default the first
//
// [Reference] makes the same picture without any of that. All of it is integer
// arithmetic, so the two are equal to the byte, on any layout.
package microscope
