/**
 * What Home Assistant documents for its MQTT integration, as far as our message uses it: the short forms, and by platform which keys there are
 * (integrations/mqtt “device discovery payload”, binary_sensor.mqtt, sensor.mqtt, button.mqtt). A reader that knows only this reads our message.
 */

const short: Readonly<Record<string, string>> = {
  dev: 'device',
  o: 'origin',
  cmps: 'components',
  p: 'platform',
  uniq_id: 'unique_id',
  stat_t: 'state_topic',
  val_tpl: 'value_template',
  avty: 'availability',
  t: 'topic',
  dev_cla: 'device_class',
  ent_cat: 'entity_category',
  stat_cla: 'state_class',
  unit_of_meas: 'unit_of_measurement',
  exp_aft: 'expire_after',
  json_attr_t: 'json_attributes_topic',
  json_attr_tpl: 'json_attributes_template',
  cmd_t: 'command_topic',
  pl_prs: 'payload_press',
};
const shortDevice: Readonly<Record<string, string>> = {
  ids: 'identifiers',
  mdl: 'model',
  mf: 'manufacturer',
  sn: 'serial_number',
  sw: 'sw_version',
  hw: 'hw_version',
};
const shortOrigin: Readonly<Record<string, string>> = { sw: 'sw_version', url: 'support_url' };

const everyEntity = [
  'availability',
  'availability_mode',
  'device_class',
  'enabled_by_default',
  'encoding',
  'entity_category',
  'icon',
  'json_attributes_template',
  'json_attributes_topic',
  'name',
  'platform',
  'qos',
  'unique_id',
];
export const keysOf: Readonly<Record<string, readonly string[]>> = {
  binary_sensor: [
    ...everyEntity,
    'expire_after',
    'force_update',
    'off_delay',
    'payload_off',
    'payload_on',
    'state_topic',
    'value_template',
  ],
  sensor: [
    ...everyEntity,
    ...['expire_after', 'force_update', 'options', 'state_class', 'state_topic', 'suggested_display_precision'],
    ...['unit_of_measurement', 'value_template'],
  ],
  button: [...everyEntity, 'command_template', 'command_topic', 'payload_press', 'retain'],
};
export const requiredOf: Readonly<Record<string, readonly string[]>> = {
  binary_sensor: ['platform', 'unique_id', 'state_topic'],
  sensor: ['platform', 'unique_id', 'state_topic'],
  button: ['platform', 'unique_id', 'command_topic'],
};
/** Some of the documented ones: those that fit a node. */
export const deviceClasses: Readonly<Record<string, readonly string[]>> = {
  binary_sensor: ['connectivity', 'heat', 'power', 'problem', 'running', 'update'],
  sensor: ['data_size', 'duration', 'temperature', 'timestamp'],
  button: ['identify', 'restart', 'update'],
};
export const deviceKeys = ['identifiers', 'name', 'model', 'manufacturer', 'serial_number', 'sw_version', 'hw_version'];
export const originKeys = ['name', 'sw_version', 'support_url'];
export const sharedKeys = ['device', 'origin', 'components', 'availability', 'command_topic', 'state_topic', 'qos', 'encoding'];
export const availabilityKeys = ['topic', 'payload_available', 'payload_not_available', 'value_template'];

export type Json = Readonly<Record<string, unknown>>;

const renamed = (of: Json, names: Readonly<Record<string, string>>): Json =>
  Object.fromEntries(Object.entries(of).map(([key, value]) => [names[key] ?? key, value]));

export interface Read {
  readonly shared: Json;
  readonly device: Json;
  readonly origin: Json;
  readonly components: Readonly<Record<string, Json>>;
}

/** The message with all names in full. */
export function read(payload: string): Read {
  const shared = renamed(JSON.parse(payload) as Json, short);
  const components = Object.entries(shared.components as Readonly<Record<string, Json>>).map(([id, c]) => {
    const full = renamed(c, short);
    const availability = full.availability as readonly Json[] | undefined;
    return [id, { ...full, ...(availability && { availability: availability.map((a) => renamed(a, short)) }) }] as const;
  });
  return {
    shared,
    device: renamed(shared.device as Json, shortDevice),
    origin: renamed(shared.origin as Json, shortOrigin),
    components: Object.fromEntries(components),
  };
}
