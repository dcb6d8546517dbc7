package ctl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/version"
)

// bundleRows is how many flows, routes and records a bundle holds at most.
const bundleRows = 100_000

func (a *app) bundleCommand() *cobra.Command {
	var file, telemetry string
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect what a bug report needs into one archive, without secrets",
		Long: "Collect what a bug report needs into one tar.gz archive: versions, status, configuration without\n" +
			"secrets, neighbours, capabilities, flows, records, counters, metrics and a dump of pncd's goroutines.\n" +
			"What could not be collected is listed in errors.txt. Addresses of the network are in it.\n\n" +
			"Exit status 1 when pncd could not be reached.",
		Args: needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := archiveName(file); err != nil {
				return err
			}
			b := &bundle{app: a, now: a.env.Now().UTC()}
			node, err := b.collect(ctx, telemetry)
			if err != nil {
				return err
			}
			if file == "-" {
				return b.write(a.env.Stdout)
			}
			if file == "" {
				file = fmt.Sprintf("pncd-support-%s-%s.tar.gz", safeName(node), b.now.Format("20060102T150405Z"))
			}
			if err := writeFile(ctx, file, b.write); err != nil {
				return fmt.Errorf("write the bundle: %w", err)
			}
			fmt.Fprintf(a.env.Stdout, "%s: %d files\n", file, len(b.files))
			return nil
		}),
	}
	// Here -o names the file, as tools for support bundles have it; the global --output has no use.
	cmd.Flags().StringVarP(&file, "output", "o", "", "the archive to write: a file, a device or pipe, - for standard output (default pncd-support-NODE-TIME.tar.gz)")
	_ = cmd.RegisterFlagCompletionFunc("output", files)
	cmd.Flags().StringVar(&telemetry, "telemetry", "", "host:port of pncd's telemetry (default what its configuration says)")
	return cmd
}

// bundle is an archive being collected.
type bundle struct {
	app      *app
	now      time.Time
	files    []bundleFile
	problems []string
}

type bundleFile struct {
	name string
	data []byte
}

func (b *bundle) add(name string, data []byte) { b.files = append(b.files, bundleFile{name, data}) }

func (b *bundle) problem(name string, err error) {
	b.problems = append(b.problems, name+": "+oneLine(status.Convert(err).Message()))
}

// collect asks for everything. It fails only when pncd does not answer at all: whatever else is missing
// is a finding for the bundle.
func (b *bundle) collect(ctx context.Context, telemetry string) (node string, err error) {
	a := b.app
	st, err := a.status(ctx)
	if code := status.Code(err); code == codes.Unavailable || err != nil && code == codes.Unknown {
		return "", err
	}
	b.message("status.json", st, err)
	own, err := json.MarshalIndent(map[string]any{"pncctl": version.Get(), "pncd": st.GetVersion()}, "", "  ")
	if err != nil {
		return "", err
	}
	b.add("version.json", append(own, '\n'))

	cfg, err := ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.GetConfig, &pncv1.GetConfigRequest{})
	if err != nil {
		b.problem("config.yaml", err)
	} else {
		b.add("config.yaml", []byte(withoutSecrets(cfg.GetYaml())))
	}
	nb, err := a.neighbors(ctx, "")
	b.message("neighbors.json", nb, err)
	caps, err := ask(ctx, a, pncv1.NewCapabilityServiceClient, pncv1.CapabilityServiceClient.ListCapabilities,
		&pncv1.ListCapabilitiesRequest{IncludeWithoutProxy: true, Limit: bundleRows})
	b.message("capabilities.json", caps, err)
	rejected, err := ask(ctx, a, pncv1.NewCapabilityServiceClient, pncv1.CapabilityServiceClient.ListCapabilities,
		&pncv1.ListCapabilitiesRequest{Rejected: true, Limit: bundleRows})
	b.message("rejected.json", rejected, err)
	flows, err := ask(ctx, a, pncv1.NewFlowServiceClient, pncv1.FlowServiceClient.ListFlows, &pncv1.ListFlowsRequest{Limit: bundleRows})
	b.message("flows.json", flows, err)
	records, err := ask(ctx, a, pncv1.NewRecordServiceClient, pncv1.RecordServiceClient.ListRecords, &pncv1.ListRecordsRequest{Limit: bundleRows})
	b.message("records.json", records, err)
	changes, err := ask(ctx, a, pncv1.NewRecordServiceClient, pncv1.RecordServiceClient.ListHostChanges, &pncv1.ListHostChangesRequest{})
	b.message("host-changes.json", changes, err)
	counters, err := ask(ctx, a, pncv1.NewRecordServiceClient, pncv1.RecordServiceClient.ListCounters, &pncv1.ListCountersRequest{})
	b.message("counters.json", counters, err)

	if telemetry == "" {
		telemetry = telemetryAddress(cfg.GetYaml())
	}
	b.telemetry(ctx, telemetry)
	if len(b.problems) > 0 {
		b.add("errors.txt", []byte(strings.Join(b.problems, "\n")+"\n"))
	}
	return st.GetNode(), nil
}

func (b *bundle) message(name string, m proto.Message, err error) {
	if err == nil {
		var data []byte
		if data, err = indentedJSON(m); err == nil {
			b.add(name, data)
			return
		}
	}
	b.problem(name, err)
}

// write writes the archive. Its entries carry the time of collection and no owner.
func (b *bundle) write(w io.Writer) error {
	zw := gzip.NewWriter(w)
	tw := tar.NewWriter(zw)
	for _, f := range b.files {
		h := &tar.Header{Name: "pncd-support/" + f.name, Mode: 0o600, Size: int64(len(f.data)), ModTime: b.now, Format: tar.FormatPAX}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(tw.Close(), zw.Close())
}

// secretLine is a key of YAML whose value must not leave the node. pncd leaves them out itself; a second
// look costs nothing and holds for a pncd of another version too.
var secretLine = regexp.MustCompile(`(?im)^(\s*(?:-\s+)?["']?[\w.-]*(?:password|passphrase|secret|token|md5|auth[\w-]*key)["']?\s*:)[ \t]*\S.*$`)

// secretFlow is the same inside of a flow mapping, as in {address: 192.0.2.1, password: x}.
var secretFlow = regexp.MustCompile(`(?i)([{,]\s*["']?[\w.-]*(?:password|passphrase|secret|token|md5)["']?\s*:)\s*("[^"]*"|'[^']*'|[^,}\n]*)`)

func withoutSecrets(yaml string) string {
	yaml = secretLine.ReplaceAllString(yaml, "$1 (secret)")
	return secretFlow.ReplaceAllString(yaml, "$1 (secret)")
}

// telemetryAddress finds the telemetry's address in pncd's configuration; empty when there is none.
func telemetryAddress(config string) string {
	var c struct {
		Telemetry struct {
			Listen string `json:"listen"`
		} `json:"telemetry"`
	}
	if err := yaml.Unmarshal([]byte(config), &c); err != nil {
		return ""
	}
	return c.Telemetry.Listen
}

// safeName keeps what can be part of a file's name.
func safeName(s string) string {
	var b bytes.Buffer
	for _, r := range s {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "node"
	}
	return b.String()
}
