// Package report turns the results of experiments into what people read: text
// tables, charts as SVG, and one HTML page that needs no network.
//
//	fmt.Print(report.Text(result))               // tables and verdict
//	err := report.Save(dir, env.Read(), result)  // NAME.jsonl, NAME.txt, NAME.svg
//	err = report.Page(file, env.Read(), results) // everything
//
// Rows are grouped by their units: a table and a chart for each pair of an x
// and a y unit.
package report
