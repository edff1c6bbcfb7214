import type { S3Exchange } from "./exchange-log.ts";
import type { S3Operation } from "./perform-operation.ts";

/** Whose access log: AWS' server access log, OSS' real-time log, MinIO's audit log. */
export type AccessLogFormat = "S3" | "OSS" | "MINIO";

/** One ended request as one line of such a log, without a line end. */
export function toAccessLogLine(format: AccessLogFormat, exchange: S3Exchange, accessKeyId: string): string {
  switch (format) {
    case "S3":
      return toS3Line(exchange, accessKeyId);
    case "OSS":
      return JSON.stringify(toOssEntry(exchange, accessKeyId));
    case "MINIO":
      return JSON.stringify(toMinioEntry(exchange, accessKeyId));
  }
}

const S3_OPERATIONS: Readonly<Record<S3Operation, string>> = {
  PutObject: "REST.PUT.OBJECT",
  GetObject: "REST.GET.OBJECT",
  HeadObject: "REST.HEAD.OBJECT",
  DeleteObject: "REST.DELETE.OBJECT",
  ListObjectsV2: "REST.GET.BUCKET",
  HeadBucket: "REST.HEAD.BUCKET",
  CreateMultipartUpload: "REST.POST.UPLOADS",
  UploadPart: "REST.PUT.PART",
  CompleteMultipartUpload: "REST.POST.UPLOAD",
  AbortMultipartUpload: "REST.DELETE.UPLOAD",
  ListMultipartUploads: "REST.GET.UPLOADS",
  Other: "REST.GET.OTHER",
};

const OWNER = "79a5000000000000000000000000000000000000000000000000000000000000";

/** Space-delimited; `-` stands for nothing; the Request-URI is the real one, with its query. */
function toS3Line(exchange: S3Exchange, accessKeyId: string): string {
  const { headers, totalMs } = exchange;
  return [
    OWNER,
    exchange.bucket || "-",
    `[${clfTime(exchange.arrivedAt)} +0000]`,
    exchange.remoteAddress,
    exchange.signed === null ? "-" : accessKeyId,
    exchange.requestId,
    S3_OPERATIONS[exchange.operation],
    exchange.key === "" ? "-" : encodeKey(exchange.key),
    quote(`${exchange.method} ${exchange.target} HTTP/${exchange.httpVersion}`),
    orDash(exchange.status),
    exchange.code ?? "-",
    exchange.bytesSent === 0 ? "-" : String(exchange.bytesSent),
    orDash(exchange.objectBytes),
    orDash(totalMs),
    orDash(totalMs),
    quote(headers["referer"] ?? "-"),
    quote(headers["user-agent"] ?? "-"),
    "-",
    "aG9zdC1pZA==",
    exchange.signed === null ? "-" : "SigV4",
    "-",
    exchange.signed === null ? "-" : exchange.signed === "QUERY" ? "QueryString" : "AuthHeader",
    exchange.host || "-",
    "-",
    "-",
    "-",
  ].join(" ");
}

/** Every value is a text, and the object and the URI are percent-encoded, as the log service holds them. */
function toOssEntry(exchange: S3Exchange, accessKeyId: string): Record<string, string> {
  const { headers, totalMs, signed, status } = exchange;
  const written = exchange.operation === "PutObject" || exchange.operation === "CompleteMultipartUpload";
  return {
    __topic__: "oss_access_log",
    time: clfTime(exchange.arrivedAt),
    access_id: signed === null ? "-" : accessKeyId,
    owner_id: "1000000000000000",
    user_agent: headers["user-agent"] ?? "-",
    bucket: exchange.bucket || "-",
    content_length_in: headers["content-length"] ?? "-",
    content_length_out: String(exchange.bytesSent),
    object: exchange.key === "" ? "-" : encodeURIComponent(exchange.key),
    object_size: orDash(exchange.objectBytes),
    operation: exchange.operation === "CreateMultipartUpload" ? "InitiateMultipartUpload" : exchange.operation,
    bucket_location: "oss-example",
    request_uri: exchange.target,
    error_code: exchange.code ?? "-",
    request_length: String(exchange.bytesReceived + exchange.target.length),
    client_ip: exchange.remoteAddress,
    response_body_length: String(exchange.bytesSent),
    http_method: exchange.method,
    referer: headers["referer"] ?? "-",
    requester_id: signed === null ? "-" : "1000000000000000",
    request_id: exchange.requestId,
    response_time: orDash(totalMs),
    server_cost_time: orDash(totalMs),
    http_type: "http",
    sign_type: signed === null ? "NotSign" : signed === "QUERY" ? "UriSign" : "NormalSign",
    http_status: orDash(status),
    sync_request: "-",
    bucket_storage_type: "standard",
    host: exchange.host || "-",
    vpc_addr: "-",
    vpc_id: "-",
    delta_data_size: written && status === 200 ? String(exchange.bytesReceived) : "-",
  };
}

/** The path has no query; the query is a map. Request headers are all there, Authorization too. */
function toMinioEntry(exchange: S3Exchange, accessKeyId: string): Record<string, unknown> {
  const { status, bucket, key } = exchange;
  return {
    version: "1",
    deploymentid: "5e757fa6-0000-4000-8000-000000000000",
    time: exchange.arrivedAt.toISOString(),
    event: "",
    trigger: "incoming",
    api: {
      name: exchange.operation === "CreateMultipartUpload" ? "NewMultipartUpload" : exchange.operation,
      ...(bucket === "" ? {} : { bucket }),
      ...(key === "" ? {} : { object: key }),
      status: exchange.code ?? "OK",
      statusCode: status ?? 0,
      rx: exchange.bytesReceived,
      tx: exchange.bytesSent,
      timeToResponse: `${(exchange.totalMs ?? 0) * 1_000_000}ns`,
    },
    remotehost: exchange.remoteAddress,
    requestID: exchange.requestId,
    userAgent: exchange.headers["user-agent"] ?? "",
    requestPath: exchange.target.split("?")[0],
    requestHost: exchange.host,
    requestQuery: Object.fromEntries(exchange.query),
    requestHeader: Object.fromEntries(
      Object.entries(exchange.headers).map(([name, value]) => [titleCase(name), value]),
    ),
    responseHeader: Object.fromEntries(
      Object.entries(exchange.responseHeaders).map(([name, value]) => [titleCase(name), value]),
    ),
    ...(exchange.signed === null ? {} : { accessKey: accessKeyId }),
  };
}

function encodeKey(key: string): string {
  return key.split("/").map(encodeURIComponent).join("/");
}

/** `06/Feb/2019:00:00:38`, in UTC. */
function clfTime(time: Date): string {
  const [, day, month, year, clock] = /^\w+, (\d\d) (\w+) (\d+) (\S+) GMT$/.exec(time.toUTCString()) ?? [];
  return `${day ?? ""}/${month ?? ""}/${year ?? ""}:${clock ?? ""}`;
}

function titleCase(name: string): string {
  return name.replaceAll(/(^|-)([a-z])/g, (_all, before: string, letter: string) => before + letter.toUpperCase());
}

function quote(text: string): string {
  return `"${text.replaceAll('"', "%22")}"`;
}

function orDash(value: number | null): string {
  return value === null ? "-" : String(value);
}
