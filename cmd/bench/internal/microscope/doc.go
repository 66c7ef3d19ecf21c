// Package microscope is the virtual microscope on DataCutter: a client views
// a region of a digitized slide at some magnification, and five filters project
// the slide's pixels onto the grid of the image.
//
//	read -> decompress -> clip -> zoom -> view
//
// A [Slide] is a file, or any io.ReaderAt: tiles at
// several resolutions, each compressed with zstd. [Generate] generates slides of
// any size that look like stained tissue, the same on every machine.
//
//	slide, err := microscope.NewSlide(microscope.SpecFor(64<<20, 1024)) // 64 MiB of pixels, tiles for units of 1 KiB
//	picture, report, err := microscope.Run(ctx, datacutter.NewTCP(""), microscope.Options{Slide: slide})
//	fmt.Println(report.Elapsed())
//
// A unit is one tile at a stage of the group: compressed, as pixels, as the
// pixels in the region, as sums for the pixels of the image. The image
// is divided into bands, each a work, which the instances of the group share.
//
// For hosts in several processes, each process creates an [App] with the same [Options]
// and passes [App.Job] to a node:
//
//	app, err := microscope.New(options)
//	report, err := node.Run(ctx, app.Job(), "node03", addrs)
//	picture, err := app.Picture() // on the host with the view filters, by default the first
//
// [Reference] computes the same image without filters. All arithmetic is integer
// arithmetic, so the two images are bytewise equal for any layout.
package microscope
