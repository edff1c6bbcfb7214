declare module "html-encoding-sniffer" {
  const htmlEncodingSniffer: (
    bytes: Uint8Array,
    options: { xml?: boolean; transportLayerEncodingLabel?: string; defaultEncoding: string | null },
  ) => string | null;
  export = htmlEncodingSniffer;
}
