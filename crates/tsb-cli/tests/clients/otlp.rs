//! OpenTelemetry's own exporter for Python.

use crate::ingest::Ingest;
use crate::python;

/// The samples of a script, by its exporter; then some by the whole library.
const SCRIPT: &str = r"
import sys
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (AggregationTemporality, Gauge, Metric, MetricExportResult, MetricsData,
    NumberDataPoint, PeriodicExportingMetricReader, ResourceMetrics, ScopeMetrics, Sum)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
url = 'http://%s/v1/metrics' % sys.argv[1]
resource = Resource({'service.name': 'shop', 'replica': 3})
for name, compression in (('plain', Compression.NoCompression), ('gzip', Compression.Gzip)):
    exporter = OTLPMetricExporter(endpoint=url, compression=compression)
    def points(start):
        return [NumberDataPoint(attributes={'host name': 'h %d' % (i % 7), 'ok': True}, start_time_unix_nano=1,
                time_unix_nano=1700000000000000001 + i, value=start + i / 4) for i in range(300)]
    metrics = [Metric('queue length', '', '1', Gauge(points(0.0))), Metric('orders', 'all of them', '1',
        Sum(points(1000), AggregationTemporality.CUMULATIVE, True))]
    scope = ScopeMetrics(InstrumentationScope(name, '1.0'), metrics, '')
    data = MetricsData([ResourceMetrics(resource, [scope], '')])
    assert exporter.export(data) == MetricExportResult.SUCCESS
provider = MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=1e9)], resource)
meter = provider.get_meter('whole')
meter.create_counter('clicks').add(5, {'page': '/'})
meter.create_histogram('seconds').record(0.5)
assert provider.force_flush()
provider.shutdown()
";

pub(crate) fn the_otlp_exporter_of_python_is_understood() {
    let ingest = Ingest::start("otlp+http");
    python(SCRIPT, &[&ingest.address]);
    let stored = ingest.stop();
    let mut expected = Vec::new();
    for scope in ["plain", "gzip"] {
        for index in 0..300_i32 {
            let labels = format!(
                "host name=h {},ok=true,otel.scope.name={scope},replica=3,service.name=shop",
                index % 7
            );
            let at = 1_700_000_000_000_000_001 + i64::from(index);
            let value = f64::from(index) / 4.0;
            expected.push((format!("queue length{{{labels}}}"), at, value));
            expected.push((format!("orders{{{labels}}}"), at, 1_000.0 + value));
        }
    }
    stored.assert_has(&expected);
    // The counter is sent with each flush, and so is the histogram, which is no single number.
    let more = stored.accepted() - expected.len() as u64;
    assert_eq!((more > 0, stored.count("malformed")), (true, more));
}
