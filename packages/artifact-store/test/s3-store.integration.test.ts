import { describeBinaryStore } from "./conformance.ts";
import { openS3 } from "./open-s3.ts";

const SMALL_PARTS = { singlePutBytesMax: 2 * 1024 * 1024, partBytesMin: 1024 * 1024 };

describeBinaryStore("S3, bucket in the path", async () => openS3({ racing: "CONFLICT" }));
describeBinaryStore("S3, bucket in the host, small parts", async () =>
  openS3({ addressing: "VIRTUAL_HOST", partBytesMin: 1024 * 1024, tuning: SMALL_PARTS }),
);
describeBinaryStore("OSS", async () => openS3({ dialect: "OSS", partBytesMin: 1024 * 1024, tuning: SMALL_PARTS }));
